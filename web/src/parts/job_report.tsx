// A job as one file that needs no network: what the job's page shows, with its
// styles and pictures inside, ready to be sent or printed.

import { render, type ComponentChildren } from 'preact';
import { clock } from '../lib/format';

// UNITS: milliseconds. How long pictures may take to come.
const PICTURES_TIME = 4000;

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}

/** The rules of this page's stylesheets. */
function styles(): string {
  return [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join('\n');
}

/** The box's pictures, when there are `count` of them or after a while. */
async function picturesOf(box: HTMLElement, count: number): Promise<HTMLImageElement[]> {
  const deadline = Date.now() + PICTURES_TIME;
  while (box.querySelectorAll('img').length < count && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const images = [...box.querySelectorAll('img')];
  await Promise.all(images.map((image) => image.decode().catch(() => undefined)));
  return images;
}

/** Pictures become part of the file. */
function inline(image: HTMLImageElement): void {
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  if (canvas.width === 0) return image.remove();
  canvas.getContext('2d')?.drawImage(image, 0, 0);
  image.src = canvas.toDataURL('image/png');
}

/** Writes `content`, which has so many pictures, to a file of that name. */
export async function saveReport(title: string, name: string, pictures: number, content: ComponentChildren): Promise<void> {
  const box = document.createElement('div');
  box.hidden = true;
  document.body.append(box);
  try {
    render(<main>{content}</main>, box);
    for (const image of await picturesOf(box, pictures)) inline(image);
    // Nothing is behind links and buttons any more.
    for (const link of box.querySelectorAll('a')) link.removeAttribute('href');
    for (const control of box.querySelectorAll('th button')) control.replaceWith(...control.childNodes);
    for (const control of box.querySelectorAll('button, select')) control.closest('label')?.remove() ?? control.remove();
    const html = `<!DOCTYPE html>
<html lang="en" class="report">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escaped(title)}</title>
<style>${styles().replace(/<\//g, '<\\/')}</style>
</head>
<body>
${box.innerHTML}
<footer class="small muted">Written by Optfarm, ${clock(Date.now())}</footer>
</body>
</html>
`;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([html], { type: 'text/html' }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } finally {
    render(null, box);
    box.remove();
  }
}
