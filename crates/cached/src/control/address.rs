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
mod tests;
