export declare const loaderOptions: {
  readonly longs: StringConstructor;
  readonly enums: StringConstructor;
  readonly defaults: boolean;
  readonly oneofs: boolean;
  readonly keepCase: boolean;
};
