//! Runs a case under callgrind and reads its count.

use std::process::Command;

/// Instructions of the case `name`, divided by the number that the case returns. Runs this program again with `flag`
/// and the name, under callgrind.
///
/// # Errors
/// If Valgrind is missing, the run fails, or no instruction is counted.
pub fn count(flag: &str, name: &str) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let file = std::env::temp_dir().join(format!("holdfast-instructions-{}", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
        // Entering or leaving one of these functions toggles collection.
        .args(["--toggle-collect=*measured_*", "--toggle-collect=*uncounted_*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args([flag, name])
        // The environment is on the stack above main; a fixed one keeps the addresses below it constant.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .map_err(|error| format!("valgrind: {error}; docker/install-packages test installs it"))?;
    let profile = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    if !output.status.success() {
        return Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let parts: Option<u64> = String::from_utf8_lossy(&output.stdout).trim().parse().ok().filter(|&parts| parts > 0);
    let parts = parts.ok_or_else(|| format!("{name}: nothing was done"))?;
    let profile = profile.map_err(|error| format!("{}: {error}", file.display()))?;
    let total = total(&profile).filter(|&total| total > 0);
    let total = total.ok_or_else(|| format!("{name}: callgrind counted nothing: is there a `measured_` function?"))?;
    Ok(total as f64 / parts as f64)
}

/// The sum at the end of a callgrind profile.
fn total(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}
