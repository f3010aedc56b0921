//! The server side: parse requests, encode responses.
