//! Steps: a program that is run, shown and timed, and whose tests are counted.
//!
//! A [`Step`] names its program, its arguments and the variables it adds to the environment, so a
//! step may be cargo or anything else. [`Steps`] runs them one after the other up to the first that
//! fails, and reports what each of them took.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// One program to run.
#[derive(Debug)]
pub(crate) struct Step {
    title: String,
    program: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Step {
    /// Runs `program`, which is looked up as the shell would.
    pub(crate) fn new(title: &str, program: &str, arguments: &[&str]) -> Self {
        Self {
            title: title.into(),
            program: program.into(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            variables: Vec::new(),
        }
    }

    /// Runs the cargo that runs this program.
    pub(crate) fn cargo(title: &str, arguments: &[&str]) -> Self {
        let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        Self::new(title, &cargo, arguments)
    }

    /// The same with a variable set in its environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The line that would start it in a shell, without the folder of the program.
    fn line(&self) -> String {
        let program = self.program.rsplit(['/', '\\']).next().unwrap_or_default();
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let words = variables.chain([program.to_string()]).chain(self.arguments.iter().cloned());
        let quoted = words.map(|word| if word.contains(' ') { format!("'{word}'") } else { word });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// Runs it, shows what it prints, and counts the tests it reports. Says whether it succeeded.
    fn run(&self, count: &mut Count) -> bool {
        match self.show(count) {
            Ok(status) => status.success(),
            Err(error) => {
                println!("cannot run `{}`: {error}", self.program);
                false
            }
        }
    }

    fn show(&self, count: &mut Count) -> std::io::Result<ExitStatus> {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let mut command = Command::new(&self.program);
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        command.args(&self.arguments).envs(variables).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                println!("{line}");
                count.add(&line);
            }
        }
        child.wait()
    }
}

/// Tests counted while they ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Count {
    /// Adds the numbers of a line that closes a run of tests.
    fn add(&mut self, line: &str) {
        if let Some(result) = pytest_summary(line) {
            self.passed += number_before(result, " passed");
            self.failed += number_before(result, " failed") + number_before(result, " error");
            self.skipped += number_before(result, " skipped") + number_before(result, " xfailed");
            return;
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.passed += number_before(result, " passed");
        self.failed += number_before(result, " failed");
        self.skipped += number_before(result, " ignored");
    }
}

/// The counts of a line such as `3 failed, 12 passed, 1 skipped in 2.34s`.
fn pytest_summary(line: &str) -> Option<&str> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let ends = time.split('s').next().is_some_and(|n| n.parse::<f64>().is_ok());
    let counted = |part: &str| {
        let (number, word) = part.trim().split_once(' ').unwrap_or_default();
        number.parse::<u64>().is_ok() && word.chars().all(|c| c.is_ascii_alphabetic())
    };
    (ends && counts.split(',').all(counted)).then_some(counts)
}

/// The number that stands before `word`.
fn number_before(text: &str, word: &str) -> u64 {
    if !text.contains(word) {
        return 0;
    }
    let before = text.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Steps that have run: whether all succeeded, how long each took, and what they counted.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    times: Vec<(String, Duration)>,
    count: Count,
    broken: bool,
}

impl Steps {
    /// Runs `steps` in their order, up to the first that fails.
    pub(crate) fn of(steps: &[Step]) -> Self {
        let mut all = Self::default();
        all.go_on(steps);
        all
    }

    /// Runs more steps, unless one has failed already.
    pub(crate) fn go_on(&mut self, steps: &[Step]) {
        for step in steps {
            if self.broken {
                break;
            }
            println!("\n== {}: {}", step.title, step.line());
            let start = Instant::now();
            self.broken = !step.run(&mut self.count);
            let time = start.elapsed();
            println!("== {}: {}", step.title, seconds(time));
            self.times.push((step.title.clone(), time));
        }
    }

    /// Whether every step succeeded.
    pub(crate) fn succeeded(&self) -> bool {
        !self.broken
    }

    /// Whether every step succeeded, some test ran, and none failed.
    pub(crate) fn passed(&self) -> bool {
        self.succeeded() && self.count.failed == 0 && self.count.passed > 0
    }

    /// Prints what each step took and how many tests passed.
    pub(crate) fn report(&self) {
        let Count { passed, failed, skipped } = self.count;
        println!("\n{}{passed} passed, {failed} failed, {skipped} skipped", self.table());
    }

    /// A line for each step and one for all.
    fn table(&self) -> String {
        let total = ("together".to_string(), self.times.iter().map(|(_, time)| *time).sum());
        let rows: Vec<_> = self.times.iter().chain([&total]).collect();
        let width = rows.iter().map(|(title, _)| title.chars().count()).max().unwrap_or_default();
        let line = |(title, time): &(String, Duration)| {
            format!("{title:<width$}  {:>8}\n", seconds(*time))
        };
        rows.into_iter().map(line).collect()
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let mut count = Count::default();
        count.add("test result: ok. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out");
        count.add("test some_law ... ok");
        count.add("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out");
        assert_eq!(count, Count { passed: 13, failed: 3, skipped: 1 });
    }

    #[test]
    fn results_of_pytest_are_counted() {
        let mut count = Count::default();
        count.add("3 failed, 12 passed, 1 skipped, 2 xfailed, 7 warnings in 2.34s");
        count.add("================ 5 passed in 61.20s (0:01:01) ================");
        count.add("it was 4 passed in between");
        count.add("sampled 100 rows in 2.0s");
        assert_eq!(count, Count { passed: 17, failed: 3, skipped: 3 });
    }

    #[test]
    fn a_step_is_shown_as_a_shell_would_take_it() {
        let step = Step::new("docs", "/usr/bin/cargo", &["doc", "--no-deps"])
            .with("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(step.line(), "'RUSTDOCFLAGS=-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn steps_end_with_the_first_that_fails() {
        let here = env::current_exe().unwrap();
        let here = here.to_str().unwrap();
        let good = || Step::new("list", here, &["--list"]);
        let bad = Step::new("nothing", "/no/such/program", &[]);
        let steps = Steps::of(&[good(), bad, good()]);
        assert!(!steps.succeeded() && !steps.passed());
        let titles: Vec<&str> = steps.times.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["list", "nothing"]);
        assert!(Steps::of(&[good()]).succeeded());
        assert!(!Steps::of(&[good()]).passed(), "no test ran");
    }

    #[test]
    fn the_table_adds_up() {
        let times = [("lints", 1500), ("tests", 61_000)];
        let times = times.map(|(title, ms)| (title.to_string(), Duration::from_millis(ms)));
        let steps = Steps { times: times.into(), ..Steps::default() };
        assert_eq!(steps.table(), "lints        1.5 s\ntests       61.0 s\ntogether    62.5 s\n");
    }
}
