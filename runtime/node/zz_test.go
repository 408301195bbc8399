package node
import ("testing";"context";"fmt";"sync";"os";"time";"strings")
func TestZZ(t *testing.T){
 mode:=os.Getenv("ZZ"); has:=func(s string)bool{return strings.Contains(mode,s)}
 lake:=newLake(t); n:=startNode(t,lake); _=n
 e,err:=openLake(t.Context(), n.cfg); if err!=nil{t.Fatal(err)}
 ctx:=context.Background()
 mk:=func()*conn{c,_:=e.connect(); if err:=c.run(ctx,home(lake));err!=nil{t.Fatal(err)}; return c}
 mk().run(ctx,"CREATE TABLE log (i INTEGER)")
 mk().run(ctx,"CREATE TABLE log2 AS SELECT range AS i FROM range(400000)")
 var mu,wr sync.RWMutex; var wg sync.WaitGroup; stop:=make(chan struct{}); var em sync.Mutex; errs:=map[string]int{}; counts:=map[string]int{}
 note:=func(k string,err error){em.Lock();defer em.Unlock();counts[k]++; if err!=nil{m:=err.Error(); if len(m)>140{m=m[:140]}; m=strings.NewReplacer("0","","1","","2","","3","","4","","5","","6","","7","","8","","9","").Replace(m); errs[k+": "+m]++}}
 nd:=8
 for i:=range nd{ c:=mk(); wg.Add(1); go func(){defer wg.Done(); for{ select{case <-stop:return;default:}
   sql:=fmt.Sprintf("CREATE OR REPLACE TABLE t%d AS SELECT range AS i FROM range(1000)",i)
   if has("Dgap"){ wr.Lock(); err:=func()error{ 
      if has("Dfine"){ c.run(ctx,"BEGIN"); mu.Lock(); q,err:=c.prepare(ctx,sql); mu.Unlock(); if err!=nil{return err}; err=q.start(ctx,false); q.close(); if err!=nil{return err} } else {
      mu.Lock(); err:=c.runAll(ctx,"BEGIN",sql); mu.Unlock(); if err!=nil{return err} }
      time.Sleep(100*time.Millisecond)
      mu.Lock(); defer mu.Unlock(); return c.run(ctx,"COMMIT") }()
      if err!=nil{mu.Lock();c.run(ctx,"ROLLBACK");mu.Unlock()}; wr.Unlock(); note("ddl",err)
   } else if has("Dexp"){ mu.Lock(); err:=c.runAll(ctx,"BEGIN",sql,"COMMIT"); if err!=nil{c.run(ctx,"ROLLBACK")}; mu.Unlock(); note("ddl",err)
   } else { if has("Dlock"){mu.Lock()} ; if has("Dshare"){mu.RLock()}; err:=c.run(ctx,sql); note("ddl",err); if has("Dlock"){mu.Unlock()}; if has("Dshare"){mu.RUnlock()} } }}()}
 for range 4{ if !has("R"){break}; c:=mk(); wg.Add(1); go func(){defer wg.Done(); for{ select{case <-stop:return;default:}
   if has("Rlong"){ err:=func()error{ if err:=c.run(ctx,"BEGIN");err!=nil{return err}
      for range 3 { mu.RLock(); q,err:=c.prepare(ctx,"SELECT count(*) FROM log WHERE i<5"); mu.RUnlock(); if err!=nil{return err}; err=q.start(ctx,true); if err==nil{ rs,er:=q.drain(ctx); releaseAll(rs); err=er }; q.close(); if err!=nil{return err}; time.Sleep(100*time.Millisecond) }
      if has("Rins"){ wr.RLock(); defer wr.RUnlock(); mu.RLock(); err:=c.run(ctx,"INSERT INTO log VALUES (7)"); mu.RUnlock(); if err!=nil{return err}; mu.RLock(); defer mu.RUnlock() }
      return c.run(ctx,"COMMIT") }(); if err!=nil{c.run(ctx,"ROLLBACK")}; note("long",err); continue }
   if has("Rlock"){mu.RLock()}
   var err error
   if has("Rprep")||has("Rfirst"){ err=func()error{ mu.RLock(); locked:=true; un:=func(){if locked{mu.RUnlock();locked=false}}; defer un()
     if err:=c.run(ctx,"BEGIN TRANSACTION READ ONLY");err!=nil{return err}
     q,err:=c.prepare(ctx,"SELECT i, i+1 FROM log2 WHERE i>5"); if err!=nil{return err}; defer q.close()
     if has("Rprep"){un(); time.Sleep(50*time.Millisecond)}
     if err:=q.start(ctx,true);err!=nil{return err}
     k:=0
     for{ r,err:=q.next(ctx); un(); if err!=nil{return err}; if r==nil{break}; k+=int(r.NumRows()); r.Release(); time.Sleep(time.Millisecond)}
     if k!=399994 {return fmt.Errorf("rows %d",k)}
     return nil}(); if err!=nil{c.run(ctx,"ROLLBACK")}else{err=c.run(ctx,"COMMIT")}
   } else if has("Rwrap"){ err=c.runAll(ctx,"BEGIN TRANSACTION READ ONLY","SELECT count(*) FROM log WHERE i<5","COMMIT"); if err!=nil{c.run(ctx,"ROLLBACK")} } else {err=c.run(ctx,"SELECT count(*) FROM log WHERE i<5")}
   if has("Rlock"){mu.RUnlock()}
   note("read",err) }}()}
 for range 2{ if !has("I"){break}; c:=mk(); wg.Add(1); go func(){defer wg.Done(); for{ select{case <-stop:return;default:}
   if has("Dgap"){wr.RLock()}
   if has("Ilock"){mu.RLock()}
   err:=c.run(ctx,"INSERT INTO log VALUES (1)")
   if has("Ilock"){mu.RUnlock()}
   if has("Dgap"){wr.RUnlock()}
   note("ins",err) }}()}
 if has("Other"){ e2,_:=openLake(ctx,n.cfg); c,_:=e2.connect(); c.run(ctx,home(lake)); wg.Add(1); go func(){defer wg.Done(); k:=0; for{ select{case <-stop:return;default:}; k++; note("other",c.run(ctx,fmt.Sprintf("CREATE OR REPLACE TABLE o%d AS SELECT 1 AS i",k%5))) }}()}
 time.Sleep(6*time.Second); close(stop); wg.Wait()
 fmt.Println("MODE",mode,counts,errs)
}
