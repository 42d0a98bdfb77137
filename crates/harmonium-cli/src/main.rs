//! The harmonium program.

#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "`report` and `sample` will call it")
)]
mod report;

fn main() {}
