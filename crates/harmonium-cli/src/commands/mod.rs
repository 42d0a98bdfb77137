//! What each command does.

mod autopilot;
pub(crate) mod classify;
pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod demo;
mod diagnose;
pub(crate) mod features;
pub(crate) mod finetune;
pub(crate) mod infer;
pub(crate) mod inspect;
pub(crate) mod logz;
pub(crate) mod report;
pub(crate) mod retrieve;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;
