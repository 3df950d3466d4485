"""The lab: what studies, compares and audits the library. The library itself never imports it."""
