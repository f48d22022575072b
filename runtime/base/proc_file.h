// Reads what the kernel says of the machine in the text files of /proc.
//
// This header knows nothing of what the values are good for.

#ifndef GOSSAMER_RUNTIME_BASE_PROC_FILE_H_
#define GOSSAMER_RUNTIME_BASE_PROC_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace gossamer {

// Returns the line of a setting below /proc/sys/net, such as "ipv4/tcp_rmem";
// "" if the kernel has no such setting.
std::string ReadNetSysctl(const std::string& name);
// Returns the last of the numbers of such a setting, which is the largest of
// "4096 131072 6291456"; 0 if it has none.
int64_t LargestOfNetSysctl(const std::string& name);

// Returns the first value of `key` in a file of "key : value" lines, such as
// /proc/cpuinfo; "" if the file or the key is missing.
std::string ProcValue(const std::string& path, const std::string& key);
// Returns the bytes that /proc/meminfo has of `key`, such as "MemTotal";
// nothing if it has none.
std::optional<double> MemoryBytes(const std::string& key);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PROC_FILE_H_
