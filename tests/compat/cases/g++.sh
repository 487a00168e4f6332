# SPDX-License-Identifier: Apache-2.0
# title: g++ compiles templates, exceptions and threads
# needs: g++
cat > a.cc <<'CC'
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <thread>
#include <vector>
template <class T> T sum(const std::vector<T> &v) { return std::accumulate(v.begin(), v.end(), T{}); }
int main()
{
	try { throw std::runtime_error("thrown"); } catch (const std::exception &e) { std::cout << e.what() << "\n"; }
	auto f = std::async(std::launch::async, [] { return sum(std::vector<int>(100, 3)); });
	std::cout << f.get() << "\n";
	std::ofstream("x.txt") << "text";
	for (auto &e : std::filesystem::directory_iterator(".")) if (e.path().extension() == ".txt") std::cout << e.path().filename() << " " << e.file_size() << "\n";
	std::cout << std::regex_replace("a1b2", std::regex("[0-9]"), "#") << " " << (std::thread::hardware_concurrency() > 0) << "\n";
}
CC
g++ -std=c++17 -O1 -pthread -o a a.cc && ./a
