// Labels in another language.
const WORDS = {
  "Send prompt": "发送提示",
  "Stop streaming": "停止流式传输",
  "Add files and more": "添加文件等",
  "Message ChatGPT": "给 ChatGPT 发消息",
  "Copy": "复制",
  "Share": "分享",
  "Dictate": "听写",
  "Start voice mode": "启动语音功能",
  "Instant": "即时"
};
export default (engine) => {
  document.documentElement.lang = "zh";
  engine.word = (word) => WORDS[word] ?? word;
};
