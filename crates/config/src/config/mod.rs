//! Configuration: turns one YAML file into a checked [`Config`], or into the list of all its errors.
//!
//! `yaml` parses a tree with positions, reads it by key and collects errors. `sections` has a file for each section of
//! the YAML, which checks its values. `checks` has the rules that concern several sections.
//!
//! # Example
//!
//! ```
//! use holdfast_config::config;
//!
//! let text = r#"ports: [{name: p1, device: "net_tap0", speed: 25G}, {name: p2, device: "net_tap1", speed: 10G}]"#;
//! let config = config::parse("rack.yaml", text).expect("it is valid");
//! assert_eq!(config.switch.ports.len(), 2);
//! let errors = config::parse("rack.yaml", "ports: [{name: p1, device: ring, speed: 25Q}]").unwrap_err();
//! assert!(errors.to_string().contains("rack.yaml:1:"), "{errors}");
//! ```

mod build;
pub mod checks;
pub mod error;
pub mod keys;
pub mod mechanisms;
pub mod mirror_words;
pub mod model;
pub mod overrides;
pub mod sections;
pub mod settings;
pub mod yaml;

use std::path::Path;

pub use error::{ConfigError, ConfigErrors, Place, Subject, Warning};
pub use model::{
    ApiConfig, BufferSummary, Config, DeviceKind, EalConfig, EcnOrder, FaultsConfig, HostsLcore, IdleConfig, IdleWait,
    LacpConfig, LcoreConfig, LldpConfig, LoopGuard, MemoryMode, PortDevice, RouterDefaults,
};
pub use overrides::Overrides;
pub use sections::api::{MAX_SOCKET_PATH, Socket};
pub use sections::buffer::{LARGEST_SIZE, SMALLEST_SIZE};
pub use sections::faults::{check_syntax as check_fault_syntax, read_request as read_faults};
pub use sections::hosts::{DEFAULT_FRAME, ROCE_DSCP, SLOWEST_FLOW, read_ip};
pub use sections::lcores::MAX_LCORES;
pub use sections::policy::{Pool, Ratio, headroom_sum};
pub use sections::ports::read_cable;

pub use self::build::build;
use self::yaml::count;
use self::yaml::read::{Item, Report};
use self::yaml::{Node, Shape};

/// Reads and checks a file.
///
/// # Errors
/// All errors in the file, or the reason why it cannot be read.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    Overrides::default().load(path)
}

/// Checks a configuration text; `source` stands for the file in errors.
///
/// # Errors
/// All errors in the text.
pub fn parse(source: &str, text: &str) -> Result<Config, ConfigErrors> {
    Overrides::default().parse(source, text)
}

/// The configuration built into the program: an incast over in-process ports.
///
/// # Panics
/// Never: a test parses it.
#[must_use]
pub fn embedded() -> Config {
    match Overrides::default().embedded() {
        Ok(config) => config,
        Err(errors) => panic!("the embedded configuration is invalid: {errors}"),
    }
}

/// Turns `text` into a configuration, or into all errors in it.
fn check(source: &str, text: &str, overrides: &Overrides) -> Result<Config, ConfigErrors> {
    let start = Some(Place { line: 1, column: 1 });
    let root = tree(source, text)?;
    if matches!(root.shape, Shape::Null) {
        let message = "the configuration is empty; write at least `preset: roce` and `ports:`".to_owned();
        return Err(ConfigErrors::one(source, start, message));
    }
    let report = Report::new(source);
    let config = build(&Item::root(&root, &report), overrides);
    let warnings = report.finish()?.iter().map(Warning::to_string).collect();
    match config {
        Some(config) => Ok(Config { warnings, text: text.to_owned(), ..config }),
        // Not reached: every omission reports an error. Still, no user input may cause a panic.
        None => Err(ConfigErrors::one(source, start, "not a configuration".to_owned())),
    }
}

/// Parses `text` into a tree in which every counted item is expanded.
pub fn tree(source: &str, text: &str) -> Result<Node, ConfigErrors> {
    let written = yaml::parse(source, text)?;
    let report = Report::new(source);
    let root = count::expand(&Item::root(&written, &report));
    // Further errors would concern items that do not exist.
    report.finish().map(|_| root)
}
