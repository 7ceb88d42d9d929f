// Labels in another language.
const WORDS = {
  "Send prompt": "프롬프트 보내기",
  "Stop streaming": "스트리밍 중지",
  "Add files and more": "파일 추가 및 기타",
  "Message ChatGPT": "ChatGPT에게 메시지 보내기",
  "Copy": "복사",
  "Share": "공유",
  "Dictate": "받아쓰기",
  "Start voice mode": "음성 모드 시작",
  "Send message": "메시지 보내기",
  "Instant": "즉시"
};
export default (engine) => {
  document.documentElement.lang = "ko";
  engine.word = (word) => WORDS[word] ?? word;
};
