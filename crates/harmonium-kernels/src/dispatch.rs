//! One source, compiled for several instruction sets and chosen at run time.
//!
//! A kernel is written once, in plain Rust over fixed-size arrays that the compiler turns into
//! vector registers. [`fast!`] compiles it three times, for the base instruction set, with AVX2 and FMA
//! enabled, and with AVX-512, and picks one at each call. All give the same bits: integers by nature, floats because
//! additions keep their order and every fused multiply-add is written as `mul_add`, which rounds
//! once everywhere. On AArch64 the vector instructions belong to the base set, so the plain
//! version is the fast one.

/// Instruction sets of x86-64 that kernels are compiled for, each with those before it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Set {
    /// What every machine has.
    Base,
    /// Registers of 32 bytes, fused multiply-add and the bit instructions that came with them.
    Avx2,
    /// Registers of 64 bytes and masks, as Ice Lake and Zen 4 have them.
    Avx512,
}

#[cfg(target_arch = "x86_64")]
impl Set {
    const ALL: [Self; 3] = [Self::Base, Self::Avx2, Self::Avx512];

    fn name(self) -> &'static str {
        match self {
            Self::Base => "x86-64",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The best that this machine has.
    fn detect() -> Self {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi2");
        match (avx2, avx512) {
            (_, true) => Self::Avx512,
            (true, _) => Self::Avx2,
            _ => Self::Base,
        }
    }
}

/// The set that runs; `HARMONIUM_INSTRUCTIONS` may name a smaller one than the machine has.
#[cfg(target_arch = "x86_64")]
pub(crate) fn set() -> Set {
    use std::sync::OnceLock;
    static SET: OnceLock<Set> = OnceLock::new();
    *SET.get_or_init(|| {
        let most = std::env::var("HARMONIUM_INSTRUCTIONS").ok();
        let named = Set::ALL.into_iter().find(|set| most.as_deref() == Some(set.name()));
        Set::detect().min(named.unwrap_or(Set::Avx512))
    })
}

/// The instruction set the kernels use on this machine.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return set().name();
    #[cfg(not(target_arch = "x86_64"))]
    return std::env::consts::ARCH;
}

/// Bytes of the nearest cache for data; 32 KiB where the machine does not say.
#[cfg(target_arch = "x86_64")]
pub(crate) fn nearest_cache() -> usize {
    use std::sync::OnceLock;
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let caches = raw_cpuid::CpuId::new().get_cache_parameters();
        let nearest = caches
            .into_iter()
            .flatten()
            .find(|cache| cache.level() == 1 && cache.cache_type() == raw_cpuid::CacheType::Data);
        nearest.map_or(32 << 10, |cache| {
            let lines = cache.associativity() * cache.physical_line_partitions() * cache.sets();
            lines * cache.coherency_line_size()
        })
    })
}

/// What code may use by hand, for functions that are told by a constant.
pub(crate) const PORTABLE: u8 = 0;
/// AVX2 and what comes with it.
#[cfg(target_arch = "x86_64")]
pub(crate) const WIDE: u8 = 1;
/// AVX-512 as well.
pub(crate) const WIDEST: u8 = 2;

/// Declares a function that runs `$portable`. It is compiled three times: for the base instruction set, for
/// AVX2 and for AVX-512; a call runs the best that the machine has, see [`set`].
///
/// Where the compiler needs help, `wide $wide` names a version that may use AVX2 by hand, and
/// `widest $widest` one that may use AVX-512; what they call by hand stands in the folder `x86/` of the
/// kernel. `widest avx2` compiles twice and keeps to AVX2, where the compiler makes slower code of more.
macro_rules! fast {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($gen:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $portable:path;) => {
        $crate::dispatch::fast! {
            $(#[$meta])* $vis fn $name[$($gen)*]($($arg: $ty),*) $(-> $ret)?
                = $portable, wide $portable, widest $portable;
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($gen:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $portable:path, wide $wide:path;) => {
        $crate::dispatch::fast! {
            $(#[$meta])* $vis fn $name[$($gen)*]($($arg: $ty),*) $(-> $ret)?
                = $portable, wide $wide, widest $wide;
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($gen:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $portable:path, wide $wide:path, widest avx2;) => {
        $(#[$meta])*
        $vis fn $name $($gen)* ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            if $crate::dispatch::set() > $crate::dispatch::Set::Base {
                #[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
                fn avx2 $($gen)* ($($arg: $ty),*) $(-> $ret)? {
                    $wide($($arg),*)
                }
                #[expect(unsafe_code, reason = "a function with more features must be called so")]
                // SAFETY: `set` has seen that the machine has these features.
                return unsafe { avx2($($arg),*) };
            }
            $portable($($arg),*)
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($gen:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $portable:path, wide $wide:path, widest $widest:path;) => {
        $(#[$meta])*
        $vis fn $name $($gen)* ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::dispatch::{Set, set};
                #[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
                fn avx2 $($gen)* ($($arg: $ty),*) $(-> $ret)? {
                    $wide($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
                fn avx512 $($gen)* ($($arg: $ty),*) $(-> $ret)? {
                    $widest($($arg),*)
                }
                #[expect(unsafe_code, reason = "functions with more features must be called so")]
                match set() {
                    // SAFETY: `set` has seen that the machine has these features.
                    Set::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Set::Avx2 => return unsafe { avx2($($arg),*) },
                    Set::Base => {}
                }
            }
            $portable($($arg),*)
        }
    };
}
pub(crate) use fast;
