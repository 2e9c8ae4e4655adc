//! Read-only pages, health and metrics.
