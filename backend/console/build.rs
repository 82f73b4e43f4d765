//! Compiles the files of the console in again after they were built anew. A debug build reads them when they are asked for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").as_deref() == Ok("release") {
        println!("cargo::rerun-if-changed=../../js/console/dist");
    }
}
