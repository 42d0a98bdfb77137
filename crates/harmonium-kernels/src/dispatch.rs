//! One source, compiled for several instruction sets and chosen at run time.
//!
//! A kernel is written once, in plain Rust over fixed-size arrays that the compiler turns into
//! vector registers. [`fast!`] compiles it a second time with AVX2 and FMA enabled and picks one at
//! each call. Both give the same bits: integers by nature, floats because additions keep their
//! order and every fused multiply-add is written as `mul_add`, which rounds once everywhere. On
//! AArch64 the vector instructions belong to the base set, so the plain version is the fast one.

/// Whether the wide version may run; `HARMONIUM_PORTABLE=1` says no.
#[cfg(target_arch = "x86_64")]
pub(crate) fn wide() -> bool {
    use std::sync::OnceLock;
    static WIDE: OnceLock<bool> = OnceLock::new();
    *WIDE.get_or_init(|| {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        has && std::env::var_os("HARMONIUM_PORTABLE").is_none_or(|v| v != "1")
    })
}

/// The instruction set the kernels use on this machine.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if wide() { "avx2" } else { "x86-64" };
    #[cfg(not(target_arch = "x86_64"))]
    return std::env::consts::ARCH;
}

/// Declares a function that runs `$portable`, compiled for the best instruction set there is.
///
/// Where the compiler needs help, `wide $wide` names a version that may use AVX2 by hand.
macro_rules! fast {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($gen:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $portable:path;) => {
        $crate::dispatch::fast! {
            $(#[$meta])* $vis fn $name[$($gen)*]($($arg: $ty),*) $(-> $ret)?
                = $portable, wide $portable;
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($gen:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? = $portable:path, wide $wide:path;) => {
        $(#[$meta])*
        $vis fn $name $($gen)* ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            if $crate::dispatch::wide() {
                #[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
                fn avx2 $($gen)* ($($arg: $ty),*) $(-> $ret)? {
                    $wide($($arg),*)
                }
                #[expect(unsafe_code, reason = "a function with more features must be called so")]
                // SAFETY: `wide` has seen that the machine has these features.
                return unsafe { avx2($($arg),*) };
            }
            $portable($($arg),*)
        }
    };
}
pub(crate) use fast;
