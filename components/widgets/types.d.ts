// Globals on the page other than the widgets' modules.

declare global {
  interface Window {
    /** Gradio's configuration; root: the page's address according to its server; mcp_server: whether it offers tools to agents. */
    gradio_config: { root: string; mcp_server: boolean };
    /** Functions that the page's HTML calls; calls wait until the scripts have loaded. */
    glassbox: {
      /** Called by a card's script. */
      card?: typeof import("../cards/card.js").card;
      /** Called by the script of the gr.HTML that receives the frames. */
      receive: typeof import("./runtime.js").receive;
      /** Called once gradio has drawn the page. */
      opened: () => void;
      /** Options shared by all widgets of a kind, by widget. */
      options: Record<string, Record<string, any>>;
      waiting: (() => void)[];
      /** Returns whether the page shows a returning visitor's session. */
      isBack?: () => boolean;
      /** Times in ms on the browser's clock: of the newest click, and of the newest on each tab. */
      clicked?: number; // time of the newest click, in ms
    };
    /** plotly.js as plotly.py ships it; undefined until it has loaded. */
    Plotly: any;
  }
}

export {};
