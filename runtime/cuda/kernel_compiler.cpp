#include "runtime/cuda/kernel_compiler.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace kelpie::runtime::cuda {

namespace {
/// A compilation takes up to 100 MB of memory; beyond this many at a time little is gained.
constexpr size_t kMostThreads = 16;
/// Of the threads there may be, one in so many are there from the beginning if the compiler is lazy.
constexpr size_t kLaziness = 4;
/// Threads that compile in this process beside others: of several, each would wait for the others to read
/// their sources.
constexpr size_t kOwnThreads = 1;
/// A process that has had nothing to do for so long ends: it takes memory.
constexpr std::chrono::seconds kKept{1};
}  // namespace

KernelCompiler::KernelCompiler(int architecture, std::string ahead, std::shared_ptr<CompilerServer> server,
                               bool lazy, size_t cores)
    : architecture_(architecture),
      server_(cores > kFewCores ? std::move(server) : nullptr),
      mostThreads_(std::clamp<size_t>(cores, 1, kMostThreads)),
      allowedThreads_(lazy ? std::max<size_t>(mostThreads_ / kLaziness, 1) : mostThreads_),
      ahead_(std::move(ahead)),
      cache_(nvrtc_.available() ? CodeCache::ofUser(nvrtc_.version()) : CodeCache("")) {}

KernelCompiler::~KernelCompiler() {
  giveUp();
  for (std::thread& thread : threads_) thread.join();
}

void KernelCompiler::giveUp() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
  }
  wake_.notify_all();
}

bool KernelCompiler::busy() const {
  const std::lock_guard lock(mutex_);
  return running_ > 0;
}

bool KernelCompiler::find(const std::string& key, std::vector<char>& code) const {
  return ahead_.read(key, code) || cache_.read(key, code);
}

void KernelCompiler::addThread(bool helped) {
  try {
    threads_.emplace_back([this, helped] { work(helped); });
  } catch (const std::exception&) {  // system_error, or bad_alloc
    mostThreads_ = allowedThreads_ = threads_.size();
  }
}

void KernelCompiler::enqueue(const std::string& key, const std::string& source) {
  const auto [job, isNew] = jobs_.try_emplace(key);
  if (!isNew) return;
  job->second.source = source;
  queue_.push_back(key);
  const size_t most = server_ ? std::min(kOwnThreads, allowedThreads_) : allowedThreads_;
  if (queue_.size() > idle_ && threads_.size() < most) addThread(false);
  wake_.notify_one();
}

void KernelCompiler::callHelpers() {
  if (!server_ || ending_) return;
  for (size_t waiting = queue_.size(); waiting > 0 && threads_.size() < allowedThreads_; --waiting)
    addThread(true);
}

void KernelCompiler::callMoreHelpers() {
  allowedThreads_ = std::min(2 * allowedThreads_, mostThreads_);
  callHelpers();
  for (size_t waiting = queue_.size(); !server_ && waiting > idle_ && threads_.size() < allowedThreads_;
       --waiting)
    addThread(false);
}

void KernelCompiler::putFirst(const std::vector<std::string>& keys) {
  size_t next = 0;
  for (const std::string& key : keys) {
    const auto it = std::find(queue_.begin(), queue_.end(), key);
    if (it == queue_.end()) continue;
    queue_.erase(it);
    queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(next++), key);
  }
}

void KernelCompiler::start(const std::vector<std::string>& sources, bool soon) {
  std::vector<const std::string*> order;
  for (const std::string& source : sources) order.push_back(&source);
  std::stable_sort(order.begin(), order.end(),
                   [](const std::string* a, const std::string* b) { return a->size() > b->size(); });
  std::vector<std::string> keys;
  for (const std::string* source : order) keys.push_back(CodeCache::key(*source, architecture_));
  const std::lock_guard lock(mutex_);
  for (size_t k = 0; k < order.size(); ++k) enqueue(keys[k], *order[k]);
  if (soon) putFirst(keys);
}

void KernelCompiler::hurry(const std::string& source) {
  const std::string key = CodeCache::key(source, architecture_);
  const std::lock_guard lock(mutex_);
  enqueue(key, source);
  putFirst({key});
  callMoreHelpers();
}

bool KernelCompiler::isReady(const std::string& source) {
  const std::string key = CodeCache::key(source, architecture_);
  {
    const std::lock_guard lock(mutex_);
    enqueue(key, source);
    if (jobs_.at(key).state == State::Done || threads_.empty()) return true;
  }
  return ahead_.has(key) || cache_.has(key);
}

bool KernelCompiler::isKept(const std::string& source) const {
  const std::string key = CodeCache::key(source, architecture_);
  return ahead_.has(key) || cache_.has(key);
}

Failure KernelCompiler::take(const std::string& source, std::vector<char>& code) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string key = CodeCache::key(source, architecture_);
  std::unique_lock lock(mutex_);
  enqueue(key, source);
  if (Job& job = jobs_.at(key); job.state == State::Queued) {
    // All threads may be at work on others, and it may be on the disk.
    std::erase(queue_, key);
    job.state = State::Running;
    lock.unlock();
    job.cached = find(key, job.code);
    lock.lock();
    if (!job.cached && threads_.empty()) {
      lock.unlock();
      job.failure = compile(key, job.source, job.code, nullptr);
      lock.lock();
    }
    job.state = job.cached || threads_.empty() ? State::Done : State::Queued;
    if (job.state == State::Queued) {
      queue_.push_front(key);
      wake_.notify_one();
    }
  }
  if (jobs_.at(key).state != State::Done && allowedThreads_ < mostThreads_) callMoreHelpers();
  done_.wait(lock, [&] { return jobs_.at(key).state == State::Done; });
  Job job = std::move(jobs_.at(key));
  jobs_.erase(key);
  ++(job.cached ? statistics_.cached : statistics_.compiled);
  statistics_.waitedSeconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  code = std::move(job.code);
  return std::move(job.failure);
}

void KernelCompiler::work(bool helped) {
  std::optional<CompilerProcess> process;
  std::unique_lock lock(mutex_);
  const auto fork = [&] {
    ++processes_;
    lock.unlock();
    process.emplace(server_->fork());
    lock.lock();
  };
  if (helped) fork();
  while (true) {
    const auto due = [this] { return ending_ || !queue_.empty(); };
    ++idle_;
    bool woken = true;
    if (process) {
      woken = wake_.wait_for(lock, kKept, due);
    } else {
      wake_.wait(lock, due);
    }
    --idle_;
    if (!woken) {
      process.reset();
      if (--processes_ == 0) server_->stop();
      continue;
    }
    if (ending_) return;
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    Job& job = jobs_.at(key);
    job.state = State::Running;
    ++running_;
    lock.unlock();
    job.cached = find(key, job.code);
    if (!job.cached) {
      lock.lock();
      callHelpers();
      if (helped && !process) fork();
      lock.unlock();
      job.failure = compile(key, job.source, job.code, process ? &*process : nullptr);
    }
    lock.lock();
    --running_;
    job.state = State::Done;
    done_.notify_all();
  }
}

Failure KernelCompiler::compile(const std::string& key, const std::string& source, std::vector<char>& code,
                                CompilerProcess* process) const {
  if (!nvrtc_.available())
    return "NVRTC (libnvrtc.so) was not found, and a kernel of this program was not compiled ahead";
  std::optional<Failure> result;
  if (process) result = process->compile(source, architecture_, code);
  if (!result) result = nvrtc_.compile(source, architecture_, code);
  if (!*result) cache_.write(key, code);
  return *result;
}

Failure KernelCompiler::compileAgain(const std::string& source, std::vector<char>& code) {
  return compile(CodeCache::key(source, architecture_), source, code, nullptr);
}

bool KernelCompiler::knows(const std::string& source) const {
  if (nvrtc_.available()) return true;
  std::vector<char> code;
  return ahead_.read(CodeCache::key(source, architecture_), code);
}

CompilerStatistics KernelCompiler::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace kelpie::runtime::cuda
