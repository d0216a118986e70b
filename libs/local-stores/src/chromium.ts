/** A Chromium for tests of pages: named, installed, or on Debian-like systems unpacked into a cache folder. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { childEnvironment, findExecutable } from './child.js';
import { unpackDebianPackage } from './debian.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const FOLDERS = ['/usr/bin', '/usr/lib/chromium', '/opt/google/chrome', '/snap/bin', '/Applications/Google Chrome.app/Contents/MacOS', '/Applications/Chromium.app/Contents/MacOS'];
const ANSWER_MS_MAX = 60_000;

export interface FoundChromium {
  readonly executable: string;
  /** What its process needs beside the common environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly origin: 'given' | 'local' | 'downloaded' | 'installed';
}

export interface FindChromiumOptions {
  /** CHROMIUM_PATH; empty = not given. */
  readonly given?: string | undefined;
  readonly path?: string;
  readonly cacheDir?: string;
  /** True: one that is not here is downloaded, and, for root, installed when it would not run unpacked. */
  readonly mayDownload?: boolean;
}

function runs(executable: string, environment: Readonly<Record<string, string>>): boolean {
  return spawnSync(executable, ['--version', '--no-sandbox'], { timeout: ANSWER_MS_MAX, stdio: 'ignore', env: { ...process.env, ...environment } }).status === 0;
}

/** Fonts that were unpacked beside it: the system's own list does not name them. */
function fontsFile(root: string): string {
  const folder = join(root, 'fonts');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'fonts.conf');
  writeFileSync(file, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${join(root, 'usr/share/fonts')}</dir><dir>/usr/share/fonts</dir><cachedir>${join(folder, 'cache')}</cachedir></fontconfig>\n`);
  return file;
}

/** Undefined when there is none and none can be had. */
export function findChromium(options: FindChromiumOptions = {}): FoundChromium | undefined {
  const { given = '', path = process.env['PATH'] ?? '', cacheDir = join(homedir(), '.cache', 'signalbox/stores'), mayDownload = false } = options;
  if (given !== '') return { executable: given, environment: {}, origin: 'given' };
  const installed = (): string | undefined => NAMES.map((name) => findExecutable(name, path, FOLDERS)).find((executable) => executable !== undefined && runs(executable, {}));
  const local = installed();
  if (local !== undefined) return { executable: local, environment: {}, origin: 'local' };
  if (!mayDownload) return undefined;
  const unpacked = unpackDebianPackage('chromium', cacheDir, path);
  if (unpacked !== undefined) {
    // The program itself: the script beside it looks for its files where an installed package has them.
    const executable = join(unpacked.root, 'usr/lib/chromium/chromium');
    const environment = { ...pick(childEnvironment(unpacked.libraryPath), 'LD_LIBRARY_PATH'), FONTCONFIG_FILE: fontsFile(unpacked.root) };
    if (existsSync(executable) && runs(executable, environment)) return { executable, environment, origin: 'downloaded' };
  }
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], { stdio: 'ignore', timeout: 300_000 }).status !== 0) return undefined;
  const now = installed();
  return now === undefined ? undefined : { executable: now, environment: {}, origin: 'installed' };
}

function pick(values: Readonly<Record<string, string>>, name: string): Record<string, string> {
  const value = values[name];
  return value === undefined ? {} : { [name]: value };
}
