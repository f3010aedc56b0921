//! What `-l` names: addresses to listen on.

/// One of the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress<'a> {
    /// Nothing is encrypted there although the server speaks TLS (`notls:`).
    pub is_plain: bool,
    /// A name or an address.
    pub host: &'a str,
    /// Where it is not the server's (`-p`).
    pub port: Option<u16>,
}

impl<'a> ListenAddress<'a> {
    /// Read `[notls:]HOST[:PORT]`. An IPv6 address stands in brackets where a port follows it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &'a str) -> Result<Self, &'static str> {
        const PORT: &str = "a port is 0 to 65535";
        let (is_plain, rest) = match text.strip_prefix("notls:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.starts_with("btls:") || rest.starts_with("mtls:") {
            return Err(
                "client certificates are asked for everywhere or nowhere, by ssl_verify_mode",
            );
        }
        let (host, port) = if let Some(bracketed) = rest.strip_prefix('[') {
            match bracketed.split_once(']') {
                Some((host, "")) => (host, None),
                Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or(PORT)?)),
                None => return Err("a bracket is not closed"),
            }
        } else {
            match rest.split_once(':') {
                // More than one colon: an IPv6 address.
                Some((_, port)) if port.contains(':') => (rest, None),
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        if host.is_empty() {
            return Err("give addresses or host names, separated by commas");
        }
        let port = port.map(str::parse).transpose().map_err(|_| PORT)?;
        Ok(Self {
            is_plain,
            host,
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_port_and_a_prefix() {
        for (text, is_plain, host, port) in [
            ("127.0.0.1", false, "127.0.0.1", None),
            ("127.0.0.1:11212", false, "127.0.0.1", Some(11212)),
            ("localhost:0", false, "localhost", Some(0)),
            ("::1", false, "::1", None),
            ("[::1]", false, "::1", None),
            ("[::1]:7", false, "::1", Some(7)),
            ("notls:::1", true, "::1", None),
            ("notls:[fe80::1]:65535", true, "fe80::1", Some(65535)),
            ("notls:cache", true, "cache", None),
        ] {
            let address = ListenAddress {
                is_plain,
                host,
                port,
            };
            assert_eq!(ListenAddress::parse(text), Ok(address), "{text}");
        }
        for text in [
            "",
            "notls:",
            ":11211",
            "[::1",
            "[::1]11211",
            "[::1]:",
            "host:65536",
            "host:x",
            "btls:127.0.0.1",
            "mtls:127.0.0.1:11212",
        ] {
            assert!(ListenAddress::parse(text).is_err(), "{text}");
        }
    }
}
