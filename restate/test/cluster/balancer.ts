import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** One address for several nodes: each connection goes to the next node that answers. */

export type Balancer = {
  readonly port: number;
  /** All connections lead to this node from now on, as far as it answers. */
  prefer(port: number): void;
  close(): Promise<void>;
};

export const startBalancer = async (ports: readonly number[]): Promise<Balancer> => {
  const sockets = new Set<Socket>();
  let next = 0;
  let preferred: number | null = null;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  };
  const join = (incoming: Socket, left: number): void => {
    if (left === 0) return void incoming.destroy();
    const isFirst = left === ports.length;
    const port = (isFirst ? preferred : null) ?? ports[next++ % ports.length] ?? 0;
    const outgoing = connect(port, '127.0.0.1');
    outgoing.setNoDelay(true);
    keep(outgoing);
    let connected = false;
    outgoing.on('connect', () => {
      connected = true;
      incoming.pipe(outgoing).pipe(incoming);
    });
    outgoing.on('error', () => {
      if (connected) incoming.destroy();
      else join(incoming, left - 1);
    });
    outgoing.on('close', () => connected && incoming.destroy());
    incoming.on('close', () => outgoing.destroy());
  };
  const server = createServer({ noDelay: true }, (incoming) => {
    keep(incoming);
    incoming.on('error', () => incoming.destroy());
    join(incoming, ports.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port, // it listens on a port
    prefer(port) {
      preferred = port;
      for (const socket of sockets) socket.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
};
