# SPDX-License-Identifier: Apache-2.0
# title: java compiles and runs with threads
# needs: java javac
# timeout: 90
cat > Main.java <<'J'
import java.net.*; import java.nio.file.*; import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class Main {
  public static void main(String[] a) throws Exception {
    ExecutorService e = Executors.newFixedThreadPool(8);
    List<Future<Integer>> f = new ArrayList<>();
    for (int i = 0; i < 20; i++) { int n = i; f.add(e.submit(() -> n * n)); }
    int s = 0; for (Future<Integer> x : f) s += x.get(); e.shutdown(); System.out.println(s);
    System.out.println(IntStream.range(0, 10000).parallel().sum());
    Files.writeString(Path.of("t"), "text"); System.out.println(Files.size(Path.of("t")));
    Process p = new ProcessBuilder("sh", "-c", "echo from sh; exit 3").start(); System.out.print(new String(p.getInputStream().readAllBytes())); System.out.println(p.waitFor());
    try (ServerSocket ss = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
      Thread t = new Thread(() -> { try (Socket c = new Socket(ss.getInetAddress(), ss.getLocalPort())) { c.getOutputStream().write(65); } catch (Exception x) { x.printStackTrace(); } }); t.start();
      System.out.println(ss.accept().getInputStream().read()); t.join();
    }
    byte[][] m = new byte[32][]; for (int i = 0; i < 64; i++) m[i % 32] = new byte[1 << 20]; System.gc();
    System.out.println(TimeZone.getDefault().getID() + " " + Locale.getDefault() + " " + java.nio.charset.Charset.defaultCharset());
    System.out.println(java.security.SecureRandom.getInstanceStrong() != null); System.exit(4);
  }
}
J
javac Main.java && java Main; echo $?
java -Xshare:auto -XX:+UseSerialGC -Xmx64m Main | head -1
printf 'public class S { public static void main(String[] a) { System.out.println("single file"); } }' > S.java; java S.java
