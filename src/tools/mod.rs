//! What the model may call: a closed enum with a file per tool. Owns argument parsing, the calls into
//! the sandbox and the bounding of output; refuses to run anything on the host.
