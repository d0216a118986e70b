import type { ReactElement } from 'react';

export function Brand(): ReactElement {
  return (
    <span className="brand">
      <img src="/dashboard/icon.svg" alt="" width={26} height={26} />
      Signalbox
    </span>
  );
}
