//! The HTTP server of the metrics, with limits.

use super::Snapshot;
use super::text::{OPEN_METRICS_TYPE, PROMETHEUS_TEXT_TYPE, open_metrics, prometheus_text};
use axum::Router;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::Listener;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Sleep, sleep};

/// Maximum number of simultaneous connections; further connections wait.
const MAX_CONNECTIONS: usize = 16;
/// Maximum duration of a connection, which is for one request.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(10);
/// Header that ends each connection after one request, so that idle clients do not occupy
/// connections.
const CLOSE_HEADER: [(HeaderName, &str); 1] = [(header::CONNECTION, "close")];
/// Pause after the system could not accept a connection because of a lack of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetricsError {
    /// The server cannot listen on the address.
    #[error(
        "cannot serve metrics on {address}: {source}: choose another address and port for \
            metrics-listen"
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The system has no thread or no file descriptor left.
    #[error("cannot start the thread for metrics: {0}")]
    Start(io::Error),
}

/// A running server of metrics. It stops on drop.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    #[cfg(test)]
    address: SocketAddr,
    /// Dropped to stop the server.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The function that returns the values for a request.
type SnapshotSource = Arc<dyn Fn() -> Snapshot + Send + Sync>;

/// Binds the address of the metrics. Clients wait until the server starts.
pub(crate) fn bind(listen: SocketAddr) -> Result<TcpListener, MetricsError> {
    let bind = || {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    bind().map_err(|source| MetricsError::Bind { address: listen, source })
}

impl MetricsServer {
    pub(super) fn start(
        listener: TcpListener,
        source: impl Fn() -> Snapshot + Send + Sync + 'static,
    ) -> Result<Self, MetricsError> {
        let address = listener.local_addr().map_err(MetricsError::Start)?;
        tracing::info!(name: "metrics-listening", %address, "metrics: listening");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(MetricsError::Start)?;
        let (stop, stopped) = oneshot::channel();
        let source: SnapshotSource = Arc::new(source);
        let body = move || {
            if let Err(error) = runtime.block_on(serve(listener, source, stopped)) {
                tracing::error!(name: "metrics-stopped", %error, "metrics: stopped");
            }
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(body);
        let thread = thread.map_err(MetricsError::Start)?;
        Ok(Self {
            #[cfg(test)]
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The bound address, for tests. The server logs it.
    #[cfg(test)]
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns no data, and a panic has been reported on standard error.
            let _ = thread.join();
        }
    }
}

async fn serve(
    listener: TcpListener,
    source: SnapshotSource,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let listener = LimitedListener { listener, permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
    let router = Router::new()
        .route("/metrics", get(move |headers| respond(headers, source)))
        .fallback(async || (StatusCode::NOT_FOUND, CLOSE_HEADER))
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, CLOSE_HEADER));
    // Open connections end with the runtime.
    tokio::select! {
        served = axum::serve(listener, router) => served,
        _ = stopped => Ok(()),
    }
}

/// The metrics in the format that the client requests.
async fn respond(headers: HeaderMap, source: SnapshotSource) -> impl IntoResponse {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let wants_open_metrics = accepts.into_iter().any(|value| value.contains("application/openmetrics-text"));
    let (media_type, text) = if wants_open_metrics {
        (OPEN_METRICS_TYPE, open_metrics(source()))
    } else {
        (PROMETHEUS_TEXT_TYPE, prometheus_text(source()))
    };
    (CLOSE_HEADER, [(header::CONTENT_TYPE, media_type)], text)
}

/// A listener with a limited number of connections.
struct LimitedListener {
    listener: tokio::net::TcpListener,
    permits: Arc<Semaphore>,
}

impl Listener for LimitedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            // Always succeeds, because the semaphore is never closed.
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { continue };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let end = Box::pin(sleep(CONNECTION_LIFETIME));
                    return (Connection { stream, end, _permit: permit }, peer);
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends after [`CONNECTION_LIFETIME`].
struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Returns an error after [`CONNECTION_LIFETIME`]. Before that, arranges that the task is woken
    /// at that time.
    fn check_time(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_time(context)?;
        pin!(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_time(context)?;
        pin!(&mut self.stream).poll_write(context, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_time(context)?;
        pin!(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_time(context)?;
        pin!(&mut self.stream).poll_shutdown(context)
    }
}
