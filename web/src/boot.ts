// Runs before anything is shown: sets the colours that were chosen, and loads the
// page's script once the page's frame has been painted, which would otherwise
// wait for it.

const theme = localStorage.getItem('theme');
if (theme) document.documentElement.dataset['theme'] = theme;

const app = document.createElement('script');
app.src = (document.currentScript as HTMLScriptElement).src.replace('boot.js', 'app.js');
const load = () => document.head.append(app);
// What is not visible is not painted.
if (document.hidden) addEventListener('DOMContentLoaded', load);
else requestAnimationFrame(() => setTimeout(load));
