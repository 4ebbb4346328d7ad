//! The conditions for reading the page: the names by which the server may be called, and the token.

use std::net::{IpAddr, SocketAddr};

/// The names by which the server may be called, and the token that it demands.
#[derive(Clone, Debug)]
pub struct Access {
    /// The token; none on the loopback interface alone.
    token: Option<String>,
    /// The name of this machine.
    host: String,
}

impl Access {
    /// For readers on this machine alone.
    pub fn local() -> Self {
        Self { token: None, host: String::new() }
    }

    /// For readers who have the token. `host` is the name of this machine.
    pub fn with_token(token: String, host: &str) -> Self {
        Self { token: Some(token), host: host.to_ascii_lowercase() }
    }

    /// The address of the page of a server.
    pub fn url(&self, address: SocketAddr) -> String {
        match &self.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }

    /// Whether a request with this `Host` was meant for this server. A page of another site whose name was
    /// bound to this machine's address has another one.
    pub fn knows_host(&self, host: Option<&str>) -> bool {
        let Some(name) = host.and_then(name_of) else { return false };
        let name = name.to_ascii_lowercase();
        if name == "localhost" {
            return true;
        }
        if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return address.is_loopback() || self.token.is_some();
        }
        // The own name with or without a domain.
        let rest = name.strip_prefix(&self.host).filter(|_| self.token.is_some() && !self.host.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Whether a query such as `token=…` has the token, if one is demanded. The time that it takes does not
    /// depend on how much of a wrong token is right.
    pub fn admits(&self, query: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = query.unwrap_or("").split('&').find_map(|pair| pair.strip_prefix("token="));
        given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes()))
    }
}

/// The name in a `Host` without its port.
fn name_of(host: &str) -> Option<&str> {
    if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        return host.get(..end + 2);
    }
    host.split(':').next().filter(|name| !name.is_empty())
}

fn is_same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(a.len() ^ b.len(), |all, (a, b)| all | usize::from(a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_of_the_loopback_address_are_refused() {
        let local = Access::local();
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:99", "127.0.0.2"] {
            assert!(local.knows_host(Some(host)), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example:80", "10.0.0.7", "", ":80", "[evil]", "localhost.evil"]
        {
            assert!(!local.knows_host(Some(host)), "{host}");
        }
        assert!(!local.knows_host(None));
    }

    #[test]
    fn with_a_token_addresses_and_the_name_of_the_machine_are_known() {
        let access = Access::with_token("abc".into(), "Node7");
        for host in ["10.0.0.7:80", "node7", "NODE7.lab.example:80", "[fe80::1]:8", "localhost"] {
            assert!(access.knows_host(Some(host)), "{host}");
        }
        for host in ["node77", "evil.example", "node8.lab.example"] {
            assert!(!access.knows_host(Some(host)), "{host}");
        }
    }

    #[test]
    fn only_the_whole_token_is_admitted() {
        let access = Access::with_token("abc".into(), "node7");
        assert!(access.admits(Some("token=abc")) && access.admits(Some("x=1&token=abc")));
        for query in [
            None,
            Some(""),
            Some("token="),
            Some("token=ab"),
            Some("token=abcd"),
            Some("token=abd"),
            Some("abc"),
        ] {
            assert!(!access.admits(query), "{query:?}");
        }
        assert!(Access::local().admits(None));
        let address = "127.0.0.1:80".parse().unwrap();
        assert_eq!(access.url(address), "http://127.0.0.1:80/?token=abc");
    }
}
