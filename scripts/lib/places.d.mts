export declare const TEMPORAL_CLI_VERSION: string;
export declare const TEMPORAL_SERVER_VERSION: string;
export declare const MINIWOB_VERSION: string;
export declare const CHROMIUM_NAMES: readonly string[];
export declare const TEMPORAL_HELP: string;
export declare const projectDir: string;

export type FoundTemporal =
  { kind: 'address'; address: string; source: string } | { kind: 'binary'; path: string; source: string };

type Env = Record<string, string | undefined>;
export declare function cacheDir(env?: Env): string;
export declare function builtTemporal(env?: Env): string;
export declare function builtTemporalServer(env?: Env): string;
export declare function downloadedTemporal(env?: Env): string;
export declare function miniwobHtmlDir(env?: Env): string;
export declare function findMiniwob(env?: Env): string | null;
export declare function which(name: string, env?: Env): string | null;
export declare function isExecutable(path: string): boolean;
export declare function findChromium(env?: Env): string | null;
export declare function postgresFolders(env?: Env, debian?: string): string[];
export declare function findTemporal(env?: Env): FoundTemporal | null;
