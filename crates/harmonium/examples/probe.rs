use harmonium::*;
fn main(){
    use std::time::Instant;
    let mut m = models::Rbm::binary(784,20).unwrap().into_machine();
    let t = harmonium_data::Table::from_real((0..784*4).map(|i| ((i*7919)%3==0) as u8 as f32).collect(),784).unwrap();
    let d = harmonium_data::Dataset::new(t, harmonium_data::Binarize::None).unwrap();
    training::initialise(&mut m,&d,&training::Plan{initial_std:0.1,..Default::default()}).unwrap();
    let s=Instant::now(); let z=exact::log_partition(&m).unwrap(); println!("784x20 {z} {:?}", s.elapsed());
    // bars & stripes
    let data = harmonium_data::Dataset::new(harmonium_data::synthetic::bars_and_stripes(3, harmonium_data::synthetic::Repeats::Counted).unwrap(), harmonium_data::Binarize::None).unwrap();
    let rate: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let epochs: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let k = std::env::args().nth(3).unwrap();
    let mom = std::env::args().nth(4).unwrap();
    for rule in (if std::env::args().nth(5).is_some() {vec![training::Rule::Pcd]} else {vec![training::Rule::Exact]}) { for seed in 0..10 {
        let s=Instant::now();
        let plan = training::Plan{rule, seed, epochs, chains: std::env::args().nth(5).unwrap_or("500".into()).parse().unwrap(), k: k.parse().unwrap(), learning_rate: rate, momentum: mom.parse().unwrap(), l2:0.0, ..Default::default()};
        let o = training::train(models::Rbm::binary(9,16).unwrap().into_machine(), &data, &plan, &mut []).unwrap();
        println!("{rule:?} {seed} {:.3} {:?}", evaluation::likelihood::exact(&o.machine,&data).unwrap().total(), s.elapsed());
    }}
}
