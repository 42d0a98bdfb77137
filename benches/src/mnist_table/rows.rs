//! The rows of the table: what each is made of, as commands that anybody can type.

/// A model that a row starts from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// The name of its run.
    pub(super) name: &'static str,
    /// What follows `harmonium train`, `IMAGES` being the training pictures.
    pub(super) train: &'static str,
}

/// How the net of a row is trained.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    /// By `harmonium finetune`: where it starts from, and its flags.
    Net { start: Option<Start>, flags: &'static str, epochs: u64 },
    /// By scikit-learn.
    Svm,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The error in percent that was published, and where.
    pub(super) published: (Option<f64>, &'static str),
    pub(super) made: Made,
}

const RBM: Start = Start {
    name: "rbm-1024",
    train: "rbm IMAGES --binarize sample --hidden 1024 --epochs 40 --learning-rate 0.05 --watch pseudo",
};
const DBN: Start = Start {
    name: "dbn-500-500-2000",
    train: "dbn IMAGES --binarize sample --hidden 500,500,2000 --epochs 30 --learning-rate 0.05",
};
const DBM: Start = Start {
    name: "dbm-500-1000",
    train: "dbm IMAGES --binarize sample --hidden 500,1000 --epochs 60 --k 5 --chains 100 --learning-rate 0.01 \
            --watch pseudo",
};

const fn net(
    name: &'static str,
    what: &'static str,
    published: (Option<f64>, &'static str),
    start: Option<Start>,
    flags: &'static str,
    epochs: u64,
) -> Row {
    Row { name, what, published, made: Made::Net { start, flags, epochs } }
}

/// All rows, those of the lecture first.
pub(super) const ROWS: [Row; 13] = [
    net(
        "net",
        "2-layer net, 800-800",
        (Some(1.60), "Simard et al. 2003"),
        None,
        "--hidden 800,800 --units logistic --learning-rate 0.1",
        60,
    ),
    Row {
        name: "svm",
        what: "SVM with a Gaussian kernel",
        published: (Some(1.40), "LeCun et al. 1998"),
        made: Made::Svm,
    },
    net(
        "dropout",
        "dropout, 3 × 1024 rectified",
        (Some(1.25), "Srivastava et al. 2014"),
        None,
        "--hidden 1024,1024,1024 --dropout 0.5 --input-dropout 0.2 --learning-rate 0.05",
        150,
    ),
    net(
        "dropout-max-norm",
        "dropout and max-norm, 3 × 1024 rectified",
        (Some(1.06), "Srivastava et al. 2014"),
        None,
        "--hidden 1024,1024,1024 --dropout 0.5 --input-dropout 0.2 --max-norm 2 --learning-rate 0.1 --momentum 0.95",
        150,
    ),
    net(
        "rbm",
        "RBM 1024, fine-tuned",
        (Some(1.27), "yell, boltzmann-machines"),
        Some(RBM),
        "--learning-rate 0.1 --input-dropout 0.2 --dropout 0.5",
        60,
    ),
    net(
        "dbn",
        "DBN 500-500-2000, fine-tuned",
        (Some(1.18), "Hinton & Salakhutdinov 2006"),
        Some(DBN),
        "--learning-rate 0.05",
        40,
    ),
    net(
        "dbn-dropout",
        "DBN 500-500-2000, dropout",
        (Some(0.92), "Srivastava et al. 2014"),
        Some(DBN),
        "--dropout 0.5 --input-dropout 0.2 --max-norm 3 --learning-rate 0.05",
        150,
    ),
    net(
        "dbm",
        "DBM 500-1000, fine-tuned",
        (Some(0.95), "Salakhutdinov & Hinton 2009"),
        Some(DBM),
        "--learning-rate 0.05",
        40,
    ),
    net(
        "dbm-dropout",
        "DBM 500-1000, dropout",
        (Some(0.79), "Srivastava et al. 2014, a DBM 500-500-2000"),
        Some(DBM),
        "--dropout 0.5 --input-dropout 0.2 --max-norm 3 --learning-rate 0.05",
        150,
    ),
    net(
        "labels-1000",
        "1,000 labels, DBM 500-1000",
        (Some(6.5), "yell, boltzmann-machines"),
        Some(DBM),
        "--labelled 1000 --dropout 0.5 --input-dropout 0.2 --max-norm 3 --learning-rate 0.05",
        200,
    ),
    net(
        "labels-1000-random",
        "1,000 labels, the same net from random weights",
        (Some(10.9), "yell, boltzmann-machines"),
        None,
        "--labelled 1000 --hidden 500,1000 --dropout 0.5 --input-dropout 0.2 --max-norm 3 --learning-rate 0.05",
        200,
    ),
    net(
        "labels-100",
        "100 labels, DBM 500-1000",
        (None, ""),
        Some(DBM),
        "--labelled 100 --batch 20 --dropout 0.5 --input-dropout 0.2 --max-norm 3 --learning-rate 0.05",
        200,
    ),
    net(
        "labels-100-random",
        "100 labels, the same net from random weights",
        (None, ""),
        None,
        "--labelled 100 --batch 20 --hidden 500,1000 --dropout 0.5 --input-dropout 0.2 --max-norm 3 \
         --learning-rate 0.05",
        200,
    ),
];
