//! Metrics of a server in the text format of Prometheus.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit for the metrics of a server.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the metrics of a server, in octets.
const METRICS_MAX: u64 = 4 << 20;

/// Reads the metrics of a server over HTTP.
///
/// # Errors
/// Errors of the connection, or of text that is not UTF-8.
pub(crate) fn read_metrics(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // Servers do not divide a response to HTTP/1.0 into chunks.
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
    let mut text = String::new();
    stream.take(METRICS_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the sum of the samples of a counter whose labels contain `label`, for example
/// `transport="tcp"`. A counter without an event can have no sample.
pub(crate) fn total(text: &str, name: &str, label: &str) -> u64 {
    let sample = |line: &str| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
        let (labels, value) = rest.rsplit_once(' ')?;
        labels.contains(label).then(|| value.trim().parse::<f64>().ok())?
    };
    text.lines().filter_map(sample).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_selected_by_a_label() {
        let text = "a_total{transport=\"udp\",type=\"A\"} 5\na_total{transport=\"tcp\",type=\"A\"} 2\n\
                    a_total{transport=\"tcp\",type=\"DS\"} 1e1\na_total_more 7\n";
        assert_eq!((total(text, "a_total", ""), total(text, "a_total", "transport=\"tcp\"")), (17, 12));
        assert_eq!(total(text, "b_total", ""), 0);
    }
}
