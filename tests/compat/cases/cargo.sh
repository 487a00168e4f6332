# SPDX-License-Identifier: Apache-2.0
# title: cargo builds a crate without dependencies
# needs: cargo
# timeout: 90
export CARGO_HOME=/tmp/cargo-home CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
mkdir -p src; printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
cat > src/main.rs <<'RS'
use std::{process::Command, sync::mpsc, thread};
fn main() {
    let (tx, rx) = mpsc::channel();
    let h: Vec<_> = (0..4).map(|i| { let tx = tx.clone(); thread::spawn(move || tx.send(i * i).unwrap()) }).collect();
    for x in h { x.join().unwrap(); }
    drop(tx);
    println!("{}", rx.iter().sum::<i32>());
    print!("{}", String::from_utf8(Command::new("sh").args(["-c", "echo from sh"]).output().unwrap().stdout).unwrap());
    let r = std::panic::catch_unwind(|| panic!("caught"));
    println!("{}", r.is_err());
    std::process::exit(6);
}
#[test] fn t() { assert_eq!(1 + 1, 2); }
RS
cargo build -q && ./target/debug/p 2>/dev/null; echo $?; cargo test -q 2>/dev/null | grep '^test result' | cut -d. -f1
