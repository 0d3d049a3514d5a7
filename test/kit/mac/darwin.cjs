// Preloaded: a program takes this machine for a Mac.
Object.defineProperty(process, 'platform', { value: 'darwin' });
