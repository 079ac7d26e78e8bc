// What the page holds besides the widgets' modules.

declare global {
  interface Window {
    /** Of gradio; root: the address under which its server believes the page to be. */
    gradio_config: { root: string };
    /** What the page's HTML calls; before the scripts have loaded, the calls wait. */
    glassbox: {
      /** By the script of a gr.HTML. */
      mount: typeof import("./runtime.js").mount;
      /** By the script of a card. */
      card?: typeof import("../cards/card.js").card;
      /** By the script of the gr.HTML that takes the frames. */
      receive: typeof import("./runtime.js").receive;
      /** Once gradio has drawn the page. */
      opened: () => void;
      /** By widget, the options of all of its kind. */
      options: Record<string, Record<string, any>>;
      waiting: (() => void)[];
      /** Whether the page shows the session of a visitor who is back. */
      isBack?: () => boolean;
      /** Times in ms of the browser's clock: of the newest click, and of the newest on each tab. */
      clicked?: number; // time of the newest click, in ms
    };
    /** plotly.js as plotly.py ships it; undefined until it has loaded. */
    Plotly: any;
  }
}

export {};
