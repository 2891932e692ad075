//! One TCP connection to a server: messages with their length in front, none of them waited for without end.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// An open connection.
pub(super) struct Connection {
    stream: TcpStream,
    patience: Duration,
}

impl Connection {
    /// Connects to a host with a port; the text says why it did not.
    pub(super) async fn open(host: &str, patience: Duration) -> Result<Connection, String> {
        let stream = bounded(patience, TcpStream::connect(host)).await?;
        // Without it small messages wait for an acknowledgement; that it fails changes nothing else.
        let _ = stream.set_nodelay(true);
        Ok(Connection { stream, patience })
    }

    /// Sends one message.
    pub(super) async fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let length = u16::try_from(message.len()).map_err(|_| "the message is longer than 65535 bytes".to_owned())?;
        let framed = [&length.to_be_bytes(), message].concat();
        bounded(self.patience, self.stream.write_all(&framed)).await
    }

    /// Waits for one message.
    pub(super) async fn receive(&mut self) -> Result<Vec<u8>, String> {
        bounded(self.patience, receive(&mut self.stream)).await
    }
}

async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
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
