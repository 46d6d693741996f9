declare const config: unknown[];
export default config;
export declare const boundaries: unknown[];
