//! Block Gibbs sweeps on one and two threads.

use crate::Outcome;
use crate::turns::{medians, on_threads};
use harmonium::engine::Arithmetic;
use harmonium::models::{Dbm, Rbm};
use harmonium::random::Stream;
use harmonium::sampling::{Chains, Sampler};

pub(crate) fn run() -> Outcome {
    let machines = [
        ("RBM 784x500", Rbm::binary(784, 500)?.into_machine()),
        ("DBM 784-500-1000", Dbm::binary(784, &[500, 1000])?.into_machine()),
    ];
    for (name, machine) in &machines {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let chains = Chains::new(machine, 100, Stream::new(1))?;
        let sweeps = |n: usize| {
            let (mut chains, sampler) = (chains.clone(), &sampler);
            move || {
                let done = on_threads(n, || chains.advance(sampler, 5, Stream::new(2)));
                assert!(matches!(done, Ok(Ok(()))), "sweeps go through");
            }
        };
        let times = medians(7, &mut [&mut sweeps(1), &mut sweeps(2)]);
        println!(
            "{name}, 100 chains: {:.2} ms a sweep on 1 thread, {:.2} ms on 2: {:.2}x",
            200.0 * times[0],
            200.0 * times[1],
            times[0] / times[1]
        );
    }
    Ok(())
}
