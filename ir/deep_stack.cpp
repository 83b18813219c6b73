#include "ir/deep_stack.h"

#include <pthread.h>
#include <sys/mman.h>

#include <exception>

namespace kelpie {

namespace {

constexpr size_t kStackSize = size_t{1} << 29;

/// Whether this thread runs on a deep stack already.
thread_local bool onDeepStack = false;

struct Job {
  const std::function<void()>& work;
  std::exception_ptr failure;
};

void* runJob(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  try {
    job.work();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

StackPool::~StackPool() {
  for (void* stack : free_) munmap(stack, bytes_);
}

void* StackPool::take() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    void* stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* stack = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  return stack == MAP_FAILED ? nullptr : stack;
}

bool StackPool::run(const std::function<void()>& work) {
  void* stack = take();
  if (!stack) return false;
  Job job{work, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, bytes_);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, runJob, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(stack);
  }
  if (job.failure) std::rethrow_exception(job.failure);
  return started;
}

void runOnDeepStack(const std::function<void()>& work) {
  if (onDeepStack) return work();
  StackPool pool(kStackSize);
  const auto onIt = [&] {
    onDeepStack = true;
    work();
  };
  if (!pool.run(onIt)) work();  // address space is limited: do with the stack there is
}

}  // namespace kelpie
