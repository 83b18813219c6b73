#include "frontend/deep_stack.h"

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
  onDeepStack = true;
  try {
    job.work();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void runOnDeepStack(const std::function<void()>& work) {
  if (onDeepStack) return work();
  void* stack = mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return work();  // address space is limited: do with the stack there is
  Job job{work, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStackSize);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, runJob, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  munmap(stack, kStackSize);
  if (!started) return work();
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace kelpie
