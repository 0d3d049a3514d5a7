import { mkdirSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { DoctorWorld } from '../../../src/commands/doctor.js';
import { fakeProgram, type Harm, write } from './world.js';

/** Ways to make the healthy world ill that several rows of doctor.test.ts share. */

export const set =
  (variables: Readonly<Record<string, string | undefined>>): Harm =>
  ({ world }) => ({ ...world, environment: { ...world.environment, ...variables } });

export const without =
  (program: string): Harm =>
  ({ bin, world }) => {
    rmSync(path.join(bin, program));
    return world;
  };

export const saying =
  (program: string, script: string): Harm =>
  (place) => {
    fakeProgram(place, program, script);
    return place.world;
  };

export const configured =
  (text: string, more: Partial<DoctorWorld> = {}): Harm =>
  ({ folder, world }) => {
    write(path.join(folder, 'home/.config/pawl/config.toml'), text);
    return { ...world, ...more };
  };

/** A state folder with something in it. */
export const withState =
  (make: (folder: string) => void): Harm =>
  ({ folder, world }) => {
    const state = path.join(folder, 'home/.local/state/pawl');
    mkdirSync(state, { recursive: true, mode: 0o700 });
    make(state);
    return world;
  };

export const serving =
  (headers: (world: DoctorWorld) => http.OutgoingHttpHeaders): Harm =>
  async ({ world }, context) => {
    const server = http.createServer((_, response) =>
      response.writeHead(404, headers(world)).end(),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    context.after(() => server.close());
    const { port } = server.address() as AddressInfo; // a server that listens at a port
    return {
      ...world,
      online: true,
      environment: { ...world.environment, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` },
    };
  };
