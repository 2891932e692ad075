//! One connection to a server, TCP or TLS: messages with their length in front, none of them waited for without end.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tls::Tls;

/// How to reach servers.
#[derive(Clone)]
pub(super) struct ServerTransport {
    /// How long a connection, or one message, may take.
    pub(super) patience: Duration,
    /// Encryption, where it was asked for.
    pub(super) tls: Option<Tls>,
}

/// An open connection.
pub(super) struct ServerConnection {
    stream: Box<dyn Stream>,
    patience: Duration,
}

/// Bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl ServerTransport {
    /// Connects to a host with a port; the text says why it did not.
    pub(super) async fn open(&self, host: &str) -> Result<ServerConnection, String> {
        let stream = bounded(self.patience, self.connect(host)).await?;
        Ok(ServerConnection { stream, patience: self.patience })
    }

    async fn connect(&self, host: &str) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(host).await?;
        // Without it small messages wait for an acknowledgement; that it fails changes nothing else.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => Ok(Box::new(tls.connect(host, stream).await?)),
        }
    }
}

impl ServerConnection {
    /// Sends one message.
    pub(super) async fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let length = u16::try_from(message.len()).map_err(|_| "the message is longer than 65535 bytes".to_owned())?;
        let framed = [&length.to_be_bytes(), message].concat();
        let stream = &mut self.stream;
        let sending = async {
            stream.write_all(&framed).await?;
            stream.flush().await
        };
        bounded(self.patience, sending).await
    }

    /// Waits for one message.
    pub(super) async fn receive(&mut self) -> Result<Vec<u8>, String> {
        bounded(self.patience, receive(&mut *self.stream)).await
    }
}

async fn receive(stream: &mut dyn Stream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

async fn bounded<T>(patience: Duration, work: impl Future<Output = io::Result<T>>) -> Result<T, String> {
    match timeout(patience, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err("the server closed the connection".into())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("nothing came within {} s", patience.as_secs_f32())),
    }
}
