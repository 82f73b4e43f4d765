//! Compiles the files of the console in again after they were built anew.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../js/console/dist");
}
