// Before the first paint: the colours that were chosen, or else those of the system.
(function () {
  var scheme = null;
  try {
    scheme = localStorage.getItem('signalbox-colors');
  } catch {
    // Storage may be denied.
  }
  if (scheme !== 'light' && scheme !== 'dark') scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
