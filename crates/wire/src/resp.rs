//! RESP, the protocol of Redis: encode commands, parse replies.
