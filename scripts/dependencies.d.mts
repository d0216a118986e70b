export declare function isInstalled(folder?: string): boolean;
export declare function install(options?: { readonly folder?: string; readonly quiet?: boolean; readonly held?: number | undefined; readonly logs?: string }): Promise<string | undefined>;
export declare function installStampOf(folder?: string): string;
export declare function digestOfLock(folder?: string): string;
