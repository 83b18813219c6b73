// Machine code for generated sources: from code compiled ahead, from the cache, or from NVRTC, which compiles
// several sources at the same time: one in this process, each of the others in one of its own where there is
// a server for those.
//
// In:  sources (codegen/cuda/cuda_module.h), announced as early as they are known.
// Out: code for one architecture. Whoever asks for a source that is still queued makes it the next one.
// Then: what NVRTC compiled is in the cache. No GPU is needed.
// Where the system has no threads, fewer compile; without any, who asks for code compiles it.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/code_cache.h"
#include "runtime/cuda/compiler_process.h"
#include "runtime/cuda/nvrtc_compiler.h"
#include "runtime/target.h"

namespace kelpie::runtime::cuda {

class KernelCompiler {
 public:
  /// Where there are no more cores, threads of one process compile as fast as processes.
  static constexpr size_t kFewCores = 4;

  /// `ahead`: a folder that `kelpie build` wrote; empty: none. `server`: of processes (compiler_process.h);
  /// null: threads of this one compile. `cores`: of the machine.
  /// `lazy`: few are at work until somebody waits, and twice as many each time: programs that can do without
  /// their code run faster then.
  KernelCompiler(int architecture, std::string ahead, std::shared_ptr<CompilerServer> server,
                 bool lazy = false, size_t cores = std::thread::hardware_concurrency());
  /// As giveUp; waits for what is being compiled.
  ~KernelCompiler();
  KernelCompiler(const KernelCompiler&) = delete;
  KernelCompiler& operator=(const KernelCompiler&) = delete;

  /// Makes a source the next one, for whoever will soon wait for it.
  void hurry(const std::string& source);
  /// Begins to compile sources; `soon`: before all others that are queued. The longest first: where there are
  /// cores for all, all take as long as the longest.
  void start(const std::vector<std::string>& sources, bool soon);
  /// Whether there is nothing to wait for before `take`: the code is there, or it is `take` that compiles it.
  /// Begins to compile the source if it was not announced.
  bool isReady(const std::string& source);
  /// Whether later runs find its code.
  bool isKept(const std::string& source) const;
  /// The code of a source; waits for it. The code is handed out once.
  Failure take(const std::string& source, std::vector<char>& code);
  /// The same by NVRTC, whatever the disk says: for code that turned out to be damaged.
  Failure compileAgain(const std::string& source, std::vector<char>& code);

  /// Forgets what is queued, and begins no more.
  void giveUp();
  /// Whether something is still being compiled. NVRTC cannot be stopped.
  bool busy() const;

  /// Whether there is code for the source, or a compiler.
  bool knows(const std::string& source) const;
  /// Whether there is a compiler.
  bool available() const { return nvrtc_.available(); }
  CompilerStatistics statistics() const;

 private:
  enum class State : uint8_t { Queued, Running, Done };
  struct Job {
    std::string source;
    State state = State::Queued;
    Failure failure;
    std::vector<char> code;
    bool cached = false;
  };
  void enqueue(const std::string& key, const std::string& source);
  void putFirst(const std::vector<std::string>& keys);
  void work(bool helped);
  /// Starts a thread that works, unless the system has no more, which is not asked again then.
  void addThread(bool helped);
  /// Starts threads with processes for what is queued, as far as there are cores.
  void callHelpers();
  /// ... with more of them from now on, as somebody waits.
  void callMoreHelpers();
  /// Code from the disk. Without the lock.
  bool find(const std::string& key, std::vector<char>& code) const;
  /// Compiles into the cache; without the lock.
  Failure compile(const std::string& key, const std::string& source, std::vector<char>& code,
                  CompilerProcess* process) const;

  const int architecture_;
  const std::shared_ptr<CompilerServer> server_;
  size_t mostThreads_;
  size_t allowedThreads_;  ///< now
  NvrtcCompiler nvrtc_;
  CodeCache ahead_, cache_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::unordered_map<std::string, Job> jobs_;  ///< by key; a Job stays where it is while others come and go
  std::deque<std::string> queue_;              ///< keys
  std::vector<std::thread> threads_;
  size_t idle_ = 0, processes_ = 0, running_ = 0;
  bool ending_ = false;
  CompilerStatistics statistics_;
};

}  // namespace kelpie::runtime::cuda
