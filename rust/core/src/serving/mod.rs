//! What a server does for every request, where Python's own objects would cost more than the work.

pub mod json;
