//! The program in the README is an example, word for word. The doctests run both.

#[test]
fn the_readme_shows_an_example_that_runs() {
    let readme = include_str!("../../../README.md");
    let example = include_str!("../examples/half_an_image.rs");
    let (_, shown) = readme.split_once("```rust\n").expect("a program in Rust");
    let (shown, _) = shown.split_once("```").expect("its end");
    let code = example.find("use harmonium").expect("its first import");
    assert_eq!(shown, &example[code..]);
}

#[test]
fn half_an_image_takes_twelve_lines_and_eight_names() {
    let example = include_str!("../examples/half_an_image.rs");
    let (_, main) = example.split_once("fn main()").expect("a main function");
    let (_, main) = main.split_once("{\n").expect("its opening");
    let (main, _) = main.split_once("\n}\n").expect("its end");
    assert!(main.lines().count() <= 12, "{} lines", main.lines().count());
    let imports = example.lines().filter(|line| line.starts_with("use "));
    let mut names = 0;
    for import in imports {
        assert!(import.starts_with("use harmonium::") && !import.contains('*'), "{import}");
        names += 1 + import.matches(',').count();
    }
    assert!(names <= 8, "{names} names");
}
