//! Due times, held against a table of clock changes, a second implementation and their properties.

mod differential;
mod expressions;
mod page;
mod properties;
mod table;
mod years;
