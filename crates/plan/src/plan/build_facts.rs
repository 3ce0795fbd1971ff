//! Facts about the build. The program passes them on, so that no library depends on a commit.

/// Facts about the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildFacts {
    /// The program with its version, as LLDP and captures name it.
    pub program: &'static str,
    /// The version of the package and, if it is known, the commit.
    pub version: &'static str,
    /// The commit as git describes it.
    pub commit: &'static str,
    /// The day of the commit, in UTC.
    pub date: &'static str,
    /// The version of the DPDK whose headers were compiled.
    pub dpdk: &'static str,
    /// How DPDK is linked.
    pub linkage: &'static str,
    /// The version of the Rust compiler.
    pub rustc: &'static str,
    /// The target of the compiler.
    pub target: &'static str,
    /// The features of cargo that were enabled.
    pub features: &'static str,
}

impl Default for BuildFacts {
    /// Facts of an unknown build.
    fn default() -> Self {
        let unknown = "unknown";
        Self {
            program: "Holdfast",
            version: unknown,
            commit: unknown,
            date: unknown,
            dpdk: unknown,
            linkage: unknown,
            rustc: unknown,
            target: unknown,
            features: unknown,
        }
    }
}
