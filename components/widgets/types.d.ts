// What the page holds besides the widgets' modules.

declare global {
  interface Window {
    /** What the page's HTML calls; before the scripts have loaded, the calls wait. */
    glassbox: {
      /** By the script of a gr.HTML. */
      mount: typeof import("./runtime.js").mount;
      /** By the script of the gr.HTML that takes the frames. */
      receive: typeof import("./runtime.js").receive;
      /** Once gradio has drawn the page. */
      opened: () => void;
      /** By widget, the options of all of its kind. */
      options: Record<string, Record<string, any>>;
      waiting: (() => void)[];
      /** Time of the last click that opened a tab, in ms of the browser's clock; undefined before the first. */
      navigated?: number;
    };
    /** plotly.js as plotly.py ships it; undefined until it has loaded. */
    Plotly: any;
  }
}

export {};
