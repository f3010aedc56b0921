//! The client side: encode requests, parse responses.
