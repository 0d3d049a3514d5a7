import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** One address for several nodes: each connection goes to the next node that answers. */

export type Balancer = { readonly port: number; close(): Promise<void> };

export const startBalancer = async (ports: readonly number[]): Promise<Balancer> => {
  const sockets = new Set<Socket>();
  let next = 0;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  };
  const join = (incoming: Socket, left: number): void => {
    if (left === 0) return void incoming.destroy();
    const outgoing = connect(ports[next++ % ports.length] ?? 0, '127.0.0.1');
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
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
};
